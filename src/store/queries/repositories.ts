import type { InstanceRecord } from '../../orchestrator/model/records.ts';
import type { CommitListener, Reader, Transaction } from '../../orchestrator/model/store.ts';
import { accountUse, credentialReader, credentialWriter, idempotencyWriter } from './accounts.ts';
import { alarmReader, alarmWriter, noticeReader, noticeWriter } from './alarms.ts';
import { attemptReader, attemptWriter } from './attempts.ts';
import { claimReader, claimWriter, storageClaimReader, storageClaimWriter } from './claims.ts';
import type { Connection } from './connection.ts';
import { cordonReader, cordonWriter } from './cordons.ts';
import { figureReader, figureWriter } from './figures.ts';
import { type AddedHistory, historyReader, historyWriter } from './history.ts';
import { instanceReader, instanceWriter } from './instances.ts';
import {
  installationReader,
  installationWriter,
  lossReader,
  lossWriter,
  markReader,
  markWriter,
} from './marks.ts';
import {
  auditReader,
  auditWriter,
  operatorKeyReader,
  operatorKeyWriter,
  operatorSessionReader,
  operatorSessionWriter,
} from './operators.ts';
import { sightingReader, sightingWriter } from './sightings.ts';
import { volumeReader, volumeWriter } from './volumes.ts';
import { withErrors } from './with-errors.ts';
import { workReader, workWriter } from './work.ts';

/** The writes of a transaction. Listeners are notified of them after the commit. */
export class Changes {
  readonly instances = new Map<string, InstanceRecord>();
  work = false;
  credentials = false;
  /** Written by `writeHistory`. */
  readonly history: AddedHistory = new Map();
}

/** `toCoreError` translates a query's error into one that the core handles. */
export function readerOn(connection: Connection, toCoreError: (error: unknown) => unknown): Reader {
  const translated = <Repository extends object>(repository: Repository): Repository =>
    withErrors(repository, toCoreError);
  return {
    instances: translated(instanceReader(connection)),
    volumes: translated(volumeReader(connection)),
    attempts: translated(attemptReader(connection)),
    sightings: translated(sightingReader(connection)),
    claims: translated(claimReader(connection)),
    storageClaims: translated(storageClaimReader(connection)),
    work: translated(workReader(connection)),
    credentials: translated(credentialReader(connection)),
    marks: translated(markReader(connection)),
    losses: translated(lossReader(connection)),
    alarms: translated(alarmReader(connection)),
    alarmNotices: translated(noticeReader(connection)),
    cordons: translated(cordonReader(connection)),
    history: translated(historyReader(connection)),
    operatorKeys: translated(operatorKeyReader(connection)),
    operatorSessions: translated(operatorSessionReader(connection)),
    audit: translated(auditReader(connection)),
    figures: translated(figureReader(connection)),
    installation: translated(installationReader(connection)),
  };
}

export function transactionOn(connection: Connection, changes: Changes): Transaction {
  return {
    instances: instanceWriter(connection, changes.instances),
    volumes: volumeWriter(connection),
    attempts: attemptWriter(connection),
    sightings: sightingWriter(connection),
    claims: claimWriter(connection),
    storageClaims: storageClaimWriter(connection),
    accountUse: accountUse(connection),
    work: workWriter(connection, () => {
      changes.work = true;
    }),
    credentials: credentialWriter(connection, () => {
      changes.credentials = true;
    }),
    marks: markWriter(connection),
    losses: lossWriter(connection),
    alarms: alarmWriter(connection),
    alarmNotices: noticeWriter(connection),
    cordons: cordonWriter(connection),
    history: historyWriter(connection, changes.history),
    operatorKeys: operatorKeyWriter(connection),
    operatorSessions: operatorSessionWriter(connection),
    audit: auditWriter(connection),
    figures: figureWriter(connection),
    installation: installationWriter(connection),
    idempotency: idempotencyWriter(connection),
  };
}

/** Notifies the listeners of a commit. */
export function notifyListeners(
  listeners: Iterable<CommitListener>,
  instances: Iterable<InstanceRecord>,
  { work, credentials }: { work?: boolean; credentials?: boolean } = {},
): void {
  const records = [...instances];
  for (const listener of listeners) {
    if (records.length > 0) listener.instancesChanged?.(records);
    if (work) listener.workChanged?.();
    if (credentials) listener.credentialsEnded?.();
  }
}
