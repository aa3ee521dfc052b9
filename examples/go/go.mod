module example.com/berthsandbox

go 1.19
