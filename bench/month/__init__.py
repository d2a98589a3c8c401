"""A month of orders and their ERP in virtual time, with everything that goes wrong in one."""
