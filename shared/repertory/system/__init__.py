"""What the library needs from the machine: files, processes, memory, certificates and logs."""
