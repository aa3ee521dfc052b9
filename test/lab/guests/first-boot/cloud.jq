# A cloud-config as a shell script: host name, users with keys, an Ed25519 host key, files, commands.
def home: if . == "root" then "/root" else "/home/\(.)" end;
def keys($name; $keys):
  if ($keys | length) == 0 then empty
  else ($name | home) as $home
    | "mkdir -p \($home)/.ssh; printf '%s\\n' \($keys | map(@sh) | join(" ")) >>\($home)/.ssh/authorized_keys; chmod 700 \($home)/.ssh; chmod 600 \($home)/.ssh/authorized_keys; chown -R \($name): \($home)"
  end;

(.hostname // empty | "echo \(@sh) >/etc/hostname; hostname \(@sh)"),
(.ssh_keys.ed25519_private // empty
  | "printf %s \(@sh) >/run/host-key; dropbearconvert openssh dropbear /run/host-key /etc/dropbear/dropbear_ed25519_host_key; rm /run/host-key"),
([.users[]? | select(type == "object")] | to_entries[] | (1000 + .key) as $id | .value as $user
  | (if $user.name == "root" then empty
     else "echo \($user.name):x:\($id):\($id)::/home/\($user.name):\($user.shell // "/bin/sh") >>/etc/passwd; echo '\($user.name):*:19000:0:99999:7:::' >>/etc/shadow; echo \($user.name):x:\($id): >>/etc/group; mkdir -p /home/\($user.name)" end),
    keys($user.name; $user.ssh_authorized_keys // [])),
(.packages // [] | if length > 0 then "echo \("not installed: \(join(" "))" | @sh)" else empty end),
(.write_files[]?
  | "mkdir -p $(dirname \(.path | @sh)); printf %s \(.content // "" | @sh) >\(.path | @sh); chmod \(.permissions // "0644" | @sh) \(.path | @sh)",
    (if .owner then "chown \(.owner | @sh) \(.path | @sh)" else empty end)),
(.runcmd[]? | if type == "array" then "( \(map(@sh) | join(" ")) )" else "sh -c \(@sh)" end)
