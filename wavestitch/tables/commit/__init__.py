"""What is written: files into a table, in one commit that names the snapshot it was decided on."""
