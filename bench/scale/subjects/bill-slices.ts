import { openMarketplaceStore } from '../../../src/compose/open-marketplace-store.ts';
import { Accrual } from '../../../src/marketplace/ledger/accrual.ts';
import { defaultOptions } from '../../../src/marketplace/model/options.ts';
import type { Log } from '../../../src/ports/log.ts';
import { systemRandom as random } from '../../../src/runtime/system.ts';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { storeDeployments } from '../../marketplace/stored-deployments.ts';
import { bytesWritten, cpuMeter, cpuOf } from '../../support/cpu.ts';
import type { OpenSubject } from '../measure.ts';

const TEAM_SIZE = 50;
/** Slices that a round comes to at least: what is billed in between is a new one of each deployment. */
const SLICES = 2_000;
/** Each deployment has one slice in it. */
const HOUR_MS = 3_600_000;

/** The billing job's rounds with n deployments, each of which has a slice due. */
export const open: OpenSubject = async ({ n, createDatabase }) => {
  const database = await createDatabase();
  await storeDeployments(database, { live: n, teams: Math.ceil(n / TEAM_SIZE) });
  const store = await openMarketplaceStore(database, () => undefined);
  const clock = new VirtualClock(Date.now());
  const fails = () => Promise.reject(new Error('nothing is to be ended'));
  const accrual = new Accrual({
    store,
    clock,
    random,
    log,
    options: defaultOptions,
    enforce: { stop: fails, terminate: fails, deleteVolume: fails },
  });
  const meter = await cpuMeter(database);
  const billOnce = async (): Promise<{ cpuUs: number; bytes: number }> => {
    clock.step(HOUR_MS);
    await store.transact(async (tx) => {
      const at = clock.now();
      const records = await tx.deployments.list({});
      await tx.deployments.recordObservations(records.map(({ id, revision }) => ({ id, revision, at })));
    });
    const before = bytesWritten();
    const cpuUs = await cpuOf(meter, () => accrual.run());
    return { cpuUs, bytes: bytesWritten() - before };
  };
  await billOnce();
  return {
    round: async () => {
      const times = Math.max(1, Math.round(SLICES / n));
      const sum = { cpuUs: 0, bytes: 0 };
      for (let time = 0; time < times; time++) {
        const { cpuUs, bytes } = await billOnce();
        sum.cpuUs += cpuUs;
        sum.bytes += bytes;
      }
      const slices = times * n;
      await assertBilled();
      const cpuMs = sum.cpuUs / 1000 / slices;
      // What PostgreSQL writes is another process's.
      return database.startsWith('sqlite:') ? { cpuMs, kib: sum.bytes / 1024 / slices } : { cpuMs };
    },
    close: async () => {
      await accrual.stop();
      await store.close();
    },
  };

  async function assertBilled(): Promise<void> {
    const [segment] = await store.read.ledger.openSegments({ limit: 1 });
    if (segment === undefined || segment.postedUntil <= clock.now() - 2 * HOUR_MS)
      throw new Error('the job bills nothing');
  }
};

const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields, message) => {
    throw new Error(`${message}: ${JSON.stringify(fields)}`);
  },
};
