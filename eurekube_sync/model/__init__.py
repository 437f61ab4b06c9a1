"""What everybody may import: values, ports and errors. Imports nothing but itself."""
