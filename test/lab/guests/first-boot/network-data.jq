# OpenStack's network_data.json, as far as it has one network, as the network-config of a NoCloud disk.
def bits: {"255": 8, "254": 7, "252": 6, "248": 5, "240": 4, "224": 3, "192": 2, "128": 1, "0": 0};
def prefix: split(".") | map(bits[.]) | add;
(.networks[0] // {type: "ipv4_dhcp"})
| {version: 2, ethernets: {card: (
    if .type == "ipv4" then {
      dhcp4: false,
      addresses: ["\(.ip_address)/\(.netmask | prefix)"],
      routes: [.routes[]? | select(.network == "0.0.0.0") | {to: "default", via: .gateway}],
      nameservers: {addresses: [.services[]? | select(.type == "dns") | .address]}
    } else {dhcp4: true} end)}}
