import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import { type Store, StoreUnavailable, type Transaction } from '../../../src/marketplace/model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import { interceptMethods } from '../../kernel/intercept-methods.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { MarketTrouble } from '../scenario.ts';

const LONGEST_STALL_MS = 3_000;
const LONGEST_SIGNAL_MS = 20;

/** The rows that a transaction wrote, as they were at its end. */
export interface Written {
  deployments: DeploymentRecord[];
  volumes: WrittenVolume[];
}

export interface WrittenVolume {
  record: VolumeRecord;
  attachments: AttachmentRecord[];
}

interface FacadeParts {
  store: Store;
  scheduler: Scheduler;
  process: ServerProcess;
  chance: Chance;
  trouble: () => MarketTrouble;
  /** Ends the process now. */
  die: () => void;
  /** Lets the process stand still now. */
  pause: () => void;
  committed: (written: Written) => void;
}

/** The shared database as one process of a replica uses it: with faults. */
export function marketStore(parts: FacadeParts): Store {
  const { store, process } = parts;
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    const { chance, trouble, scheduler } = parts;
    if (chance.happens(trouble().pause)) parts.pause();
    if (chance.happens(trouble().stall))
      await process.reach(() => scheduler.sleep(chance.whole(1, LONGEST_STALL_MS)));
    return process.reach(async () => {
      fail(parts, 'unavailable');
      return question();
    });
  };
  return {
    read: interceptMethods(store.read, (_part, _name, call) => ask(call)),
    transact: (body) => ask(() => transact(parts, body)),
    watch: (id, changed) => store.watch(id, () => deliver(parts, changed)),
    confirmationsAtOnce: store.confirmationsAtOnce,
    onWake: (woken) => store.onWake((...about) => deliver(parts, () => woken(...about))),
    snapshot: (body) => ask(() => store.snapshot(body)),
    countRequest: (window) => ask(() => store.countRequest(window)),
    uncountRequest: (window) => ask(() => store.uncountRequest(window)),
    proveWrites: () => ask(async () => undefined),
    close: async () => undefined,
  };
}

/** A commit is heard of a little later, or not at all. */
function deliver({ process, scheduler, chance, trouble }: FacadeParts, heard: () => void): void {
  if (chance.happens(trouble().lostSignal)) return;
  void process.reach(() => scheduler.sleep(chance.whole(0, LONGEST_SIGNAL_MS))).then(heard);
}

function fail({ chance, trouble }: FacadeParts, kind: keyof MarketTrouble): void {
  if (chance.happens(trouble()[kind])) throw new StoreUnavailable(`simulated: ${kind}`);
}

async function transact<T>(parts: FacadeParts, body: (tx: Transaction) => Promise<T>): Promise<T> {
  const { store, process, chance, trouble, die, committed } = parts;
  let written: Written = { deployments: [], volumes: [] };
  const result = await store.transact((tx) =>
    process.orDeath(async () => {
      const touched = { deployments: new Set<string>(), volumes: new Set<string>() };
      const outcome = await body(
        interceptMethods(tx, (part, name, call, args) => {
          if (chance.happens(trouble().death)) die();
          if (process.isDead) return new Promise(() => undefined);
          const isWrite = name === 'insert' || name === 'update' || name === 'setCleanup';
          if (isWrite && (part === 'deployments' || part === 'volumes')) touched[part].add(idOf(args[0]));
          return call();
        }),
      );
      written = await readBack(tx, touched);
      fail(parts, 'unavailable');
      return outcome;
    }),
  );
  committed(written);
  fail(parts, 'unknownOutcome');
  return result;
}

function idOf(argument: unknown): string {
  return typeof argument === 'string' ? argument : (argument as { id: string }).id;
}

async function readBack(
  tx: Transaction,
  touched: { deployments: ReadonlySet<string>; volumes: ReadonlySet<string> },
): Promise<Written> {
  const written: Written = { deployments: [], volumes: [] };
  for (const id of touched.deployments) {
    const record = await tx.deployments.byId(id);
    if (record !== null) written.deployments.push(record);
  }
  for (const id of touched.volumes) {
    const record = await tx.volumes.byId(id);
    if (record === null) continue;
    written.volumes.push({ record, attachments: await tx.volumes.attachmentsOf({ volumeId: id }) });
  }
  return written;
}
