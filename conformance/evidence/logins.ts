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
