import { orchestratorStores } from '../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { createAccount, createKey } from '../../src/orchestrator/accounts/accounts.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import { systemClock, systemRandom } from '../../src/runtime/system.ts';
import { instance } from '../../test/support/rows/orchestrator-rows.ts';
import { multiplyRows, numbered } from '../support/multiply-rows.ts';

export interface StoredInstances {
  /** The value for `--database`. */
  database: string;
  apiKey: string;
  ids: string[];
}

const ROWS_PER_TRANSACTION = 5_000;

/** Creates a database with `count` instances of one account through the store, and a key for them. */
export async function storeInstances(
  database: string,
  count: number,
  toRecord: (accountId: string) => InstanceRecord = reapedInstance,
  accountName = 'default',
): Promise<StoredInstances> {
  const store = await openIn(orchestratorStores, database, {});
  try {
    const deps = { store, clock: systemClock, random: systemRandom };
    const account = await createAccount(deps, accountName);
    const { key } = await createKey(deps, accountName);
    const ids: string[] = [];
    while (ids.length < count) {
      const rows = Math.min(ROWS_PER_TRANSACTION, count - ids.length);
      await store.transact(async (tx) => {
        for (let row = 0; row < rows; row++) {
          const record = toRecord(account.id);
          ids.push(record.id);
          await tx.instances.insert(record);
        }
      });
    }
    return { database, apiKey: key, ids };
  } finally {
    await store.close();
  }
}

/** Adds tombstones, which are copies of a stored instance. */
export async function storeTombstones(database: string, ofId: string, count: number): Promise<void> {
  const change = { id: numbered('inst'), owner_ref: numbered('berth-inst'), status: "'DESTROYED'" };
  await multiplyRows(database, [{ table: 'instances', where: `id = '${ofId}'`, count, change }]);
}

/**
 * OFFLINE, the only status with an endpoint for which no machine is expected on the platform, so that only reads are
 * measured. Its reply is one letter longer than that of an ONLINE instance.
 */
function reapedInstance(accountId: string): InstanceRecord {
  const id = `inst-${systemRandom.bytes(16).toString('hex')}`;
  const now = systemClock.now();
  return instance(id, {
    accountId,
    name: 'training-node',
    status: 'OFFLINE',
    offerId: 'h100-sxm-8x',
    region: 'eu-frankfurt',
    spec: {
      instanceType: 'DEDICATED',
      vcpus: 192,
      memoryGb: 1800,
      storageGb: 12_000,
      gpuCount: 8,
      gpuType: 'H100 SXM',
      image: 'ubuntu-24.04',
      onStop: 'release',
      resumable: true,
      sshKeys: ['ssh-ed25519 AAAA'],
      cloudInit: undefined,
      onlineWithinMs: 600_000,
    },
    endpoint: {
      publicIp: '203.0.113.17',
      privateIp: '10.20.3.17',
      sshPort: 22_017,
      sshUsername: 'ubuntu',
      portForwards: [{ internal_port: 8888, external_port: 42_017 }],
    },
    priceMicroUsdPerHour: 19_920_000,
    createdAt: now,
    updatedAt: now,
    createOpenUntil: null,
  });
}

/** ONLINE, for a server whose platform has its machine. */
export function onlineInstance(accountId: string): InstanceRecord {
  return { ...reapedInstance(accountId), status: 'ONLINE', hostKeyFingerprint: 'SHA256:plain' };
}
