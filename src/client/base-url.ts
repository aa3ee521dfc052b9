import { isIP } from 'node:net';
import { isForbiddenAddress } from './addresses.ts';

/** Parses an orchestrator's address. The result has no trailing slash. @throws {Error} with the problem, such as plain http or a private address */
export function parseBaseUrl(text: string, { allowPrivate }: { allowPrivate: boolean }): string {
  const url = URL.parse(text);
  if (url === null) throw new Error('expected a URL, such as https://gpu.example/v1');
  const problem = problemOf(url, allowPrivate);
  if (problem !== null) throw new Error(problem);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function problemOf(url: URL, allowPrivate: boolean): string | null {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'expected an https URL';
  if (url.protocol === 'http:' && !allowPrivate)
    return 'expected https: plain http needs allow_private and a private network';
  if (url.username !== '' || url.password !== '')
    return 'expected a URL without a user or a password; configure the credential separately';
  if (url.search !== '' || url.hash !== '') return 'expected a URL without a query and a fragment';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!allowPrivate && isIP(host) !== 0 && isForbiddenAddress(host))
    return `expected a public address: ${host} is private or reserved, which is not allowed without allow_private`;
  return null;
}
