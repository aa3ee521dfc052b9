const LOGIN_USERS: readonly [RegExp, string][] = [
  [/ubuntu/i, 'ubuntu'],
  [/debian/i, 'debian'],
  [/alma/i, 'almalinux'],
  [/rocky/i, 'rocky'],
  [/fedora/i, 'fedora'],
];

/** The login user that cloud images of the distribution have, by the name of the image. */
export function usualLoginUser(image: string): string {
  return LOGIN_USERS.find(([name]) => name.test(image))?.[1] ?? 'root';
}
