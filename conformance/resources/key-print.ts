import { createHash } from 'node:crypto';
import type { SignIn } from '../wire/sign-in.ts';

/**
 * By what a sweep sees that it signs in as the run did: to another account, what the run made is not there. It tells
 * nothing of the key, and that of each run is another one.
 */
export function keyPrintOf(runId: string, { apiKey, login }: SignIn): string {
  const credential = apiKey ?? login?.username ?? '';
  return createHash('sha256').update(`${runId}${credential}`).digest('hex').slice(0, 16);
}
