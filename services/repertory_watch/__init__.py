"""The watch service: scans sources when their files, servers or configuration change."""
