"""The intermediate representation: ops, values, graphs, modules."""
