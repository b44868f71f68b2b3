"""The process: its socket, connections and signals; several processes behind one port."""
