import { hostname } from 'node:os';
import { packageVersion } from '../../config/package-root.ts';
import { type AuditedStore, audit } from '../../operator-kit/audit.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';

/**
 * Writes to the audit log that this server started or stopped. Without a row of its stop, it ended in another way. A
 * failed write stops nothing.
 */
export async function auditServer(
  { store, clock, log }: { store: AuditedStore; clock: Pick<Clock, 'now'>; log: Pick<Log, 'warn'> },
  action: 'server.start' | 'server.stop',
): Promise<void> {
  const server = { name: hostname(), source: 'server', address: null } as const;
  const entry = { action, subject: server.name, detail: { version: packageVersion() } };
  await store
    .transact((tx) => audit(tx, clock, server, entry))
    .catch((err) => log.warn({ err }, `the audit log could not be written: ${action}`));
}
