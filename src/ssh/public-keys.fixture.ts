/** One public key of each kind that the contract accepts. Their private halves were thrown away. */
export const publicKeys: Record<string, string> = {
  'ssh-ed25519': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKWjmrgtoAXm8LDR+5DmEsYpb+cgH/ZjlqMZn/oNBh/l',
  'ecdsa-sha2-nistp256':
    'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBNoZK4EO6LAgC+lOdkpqUBtYC70Nml0ODQ1c0s/bVWGZaYz+8mY5Zzdn/PKnAs8e2B8TOQV4q5+of4U8o7enc1c=',
  'ecdsa-sha2-nistp384':
    'ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBBeHvi2hFI0nFm7tofcMCgw8STwfduXjjbkJ+69WFocZQMi06wRxaq6O1A3ydhKdZGS62eMtCiMMw1TdoAVXkmD8Uy2svIJyamlcYmV8JiY0Ols7Jl5PDlPuaeoxY8XrLg==',
  'ecdsa-sha2-nistp521':
    'ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBABDvkBxmDAHvrLXpD8B6gK29ZpvYql1sY7NXV2yWPdyReH7YGluC1uM+5aBw7b+RNmjtfuxE7omld/R/eY5AEGN8gCPiuo3aexLzq3sYJBEDmNzHpxvrW+2Fl9EQL6RBy/4DbGQzwaEhiyG7sTYPZKF097M8rP8VxYpZ0ahm5Jjd6ef6w==',
  'ssh-rsa':
    'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDQd/MTpRTMqCbZbXmvjm6ad0a1/o3J7qnVYRvR8UO1AI7Xnobn3tNIoyB3kc+tJlTMuExq4yCVfOP/xR1ADXGgNphlETreaQ2NaPRsCvcFUeoYH7yR5/w/cvW3MBeinhWpqzNcYLxRHPhjUaBjYHsvnZD4Yl0PW+JFZkboAFuICH6cca31TiWXWF87KN6vbgsQq8U7F79JK8+3J+l5BJZI/+2BMrOpJyhDojXUOas9CN0BHaykWDPK9X4vIpfz1nB/ZXdIh5UG+an1Abg6kCL7KtldSKfVnGocta4TuLanTW5eaqTzzbLcogK+nd0WxokhHoawv9Q5Esj7zQ2c1pIp',
  'sk-ssh-ed25519@openssh.com':
    'sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIEdZx8Arcj7lKpR6WMayipP8B1vucCSQLlpnXVmXf3O9AAAABHNzaDo=',
  'sk-ecdsa-sha2-nistp256@openssh.com':
    'sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAAIbmlzdHAyNTYAAABBBPUZ+muaZqs4G3W9RJ/zoGi31nHMIVzWk0ErN0+rlW5cEYg2ZOmvQbcYPrK5N3RMFpQV1D/3+AP4STAPvrgBHvkAAAAEc3NoOg==',
};
