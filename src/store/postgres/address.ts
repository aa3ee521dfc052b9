/** What a message may say of a database: its URL without the password, and without parameters, which may hold one. */
export function toAddress(url: string): string {
  const { username, host, pathname, searchParams } = new URL(url);
  const user = username === '' ? '' : `${username}@`;
  return `postgres://${user}${host || (searchParams.get('host') ?? '')}${pathname}`;
}
