"""What the DAGs of a stream share: the tasks of a batch, the fields of their forms, the questions to people."""
