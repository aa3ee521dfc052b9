import type { InstanceRecord } from '../../orchestrator/model/instance-record.ts';
import type { CommitListener, Reader, Transaction } from '../../orchestrator/model/store.ts';
import { accountUse } from './account-use.ts';
import { claimReader, claimWriter } from './claims.ts';
import type { Connection } from './connection.ts';
import { credentialReader, credentialWriter } from './credentials.ts';
import { idempotencyWriter } from './idempotency.ts';
import { instanceReader, instanceWriter } from './instances.ts';
import {
  installationReader,
  installationWriter,
  lossReader,
  lossWriter,
  markReader,
  markWriter,
} from './marks.ts';
import { storageClaimReader, storageClaimWriter } from './storage-claims.ts';
import { volumeReader, volumeWriter } from './volumes.ts';
import { withErrors } from './with-errors.ts';
import { workReader, workWriter } from './work.ts';

/** What one transaction has written, to be told after its commit. */
export class Changes {
  readonly instances = new Map<string, InstanceRecord>();
  work = false;
}

/** `toCoreError` gives what a query threw the name that the core knows. */
export function readerOn(connection: Connection, toCoreError: (error: unknown) => unknown): Reader {
  const wrapPart = <Part extends object>(part: Part): Part => withErrors(part, toCoreError);
  return {
    instances: wrapPart(instanceReader(connection)),
    volumes: wrapPart(volumeReader(connection)),
    claims: wrapPart(claimReader(connection)),
    storageClaims: wrapPart(storageClaimReader(connection)),
    work: wrapPart(workReader(connection)),
    credentials: wrapPart(credentialReader(connection)),
    marks: wrapPart(markReader(connection)),
    losses: wrapPart(lossReader(connection)),
    installation: wrapPart(installationReader(connection)),
  };
}

export function transactionOn(connection: Connection, changes: Changes): Transaction {
  return {
    instances: instanceWriter(connection, (record) => changes.instances.set(record.id, record)),
    volumes: volumeWriter(connection),
    claims: claimWriter(connection),
    storageClaims: storageClaimWriter(connection),
    accountUse: accountUse(connection),
    work: workWriter(connection, () => {
      changes.work = true;
    }),
    credentials: credentialWriter(connection),
    marks: markWriter(connection),
    losses: lossWriter(connection),
    installation: installationWriter(connection),
    idempotency: idempotencyWriter(connection),
  };
}

/** Tells listeners what was committed. */
export function tellOf(
  listeners: Iterable<CommitListener>,
  instances: Iterable<InstanceRecord>,
  work = false,
): void {
  const records = [...instances];
  for (const listener of listeners) {
    if (records.length > 0) listener.instancesChanged?.(records);
    if (work) listener.workChanged?.();
  }
}
