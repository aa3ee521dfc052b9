import { isLoopback } from '../text/loopback.ts';
import type { SshRecord } from '../transcript/records.ts';
import type { Evidence } from './evidence.ts';

export function isLoggedIn({ rung }: Pick<SshRecord, 'rung'>): boolean {
  return rung === 'execute' || rung === 'done';
}

/** Whether the last login before it to the same instance with the same key succeeded. */
export function workedBefore({ logins }: Evidence, login: SshRecord): boolean {
  const before = logins.findLast(
    ({ instanceId, key, step, endedAt }) =>
      instanceId === login.instanceId && key === login.key && step !== login.step && endedAt <= login.sentAt,
  );
  return before !== undefined && isLoggedIn(before);
}

/** Whether a login failed at a loopback address, which is always the computer that connects. */
export function leadsToItself({ host, rung }: SshRecord): boolean {
  return rung === 'connect' && isLoopback(host.includes(':') ? `[${host}]` : host);
}

export const LOOPBACK =
  'A loopback address is the own computer of each client, so nobody reaches the machine by it. Show as public_ip the address at which users reach the machine.';
