import { marketplaceStores } from '../../src/compose/stores/marketplace.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { BillingJob } from '../../src/marketplace/ledger/billing-job.ts';
import { defaultOptions } from '../../src/marketplace/model/options.ts';
import { systemRandom as random } from '../../src/runtime/system.ts';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { cpuMeter, cpuOf } from '../support/cpu.ts';
import { quietLog as log } from '../support/quiet-log.ts';
import { ofTeams, storeDeployments } from './stored-deployments.ts';

const HOUR_MS = 3_600_000;

/** Opens the billing job of a marketplace with running deployments. Its clock stands still. */
export async function openBillingJob(database: string, deployments: number) {
  await storeDeployments(database, ofTeams(deployments));
  const store = await openIn(marketplaceStores, database, {});
  const clock = new VirtualClock(Date.now());
  const fails = () => Promise.reject(new Error('nothing is to be ended'));
  const billing = new BillingJob({
    store,
    clock,
    random,
    log,
    options: { ...defaultOptions, billing: { ...defaultOptions.billing, sliceMs: HOUR_MS } },
    enforce: { stop: fails, terminate: fails, deleteVolume: fails },
  });
  const meter = await cpuMeter(database);
  // Billing leaves revisions as they are.
  const revisions = new Map(
    (await store.read.deployments.list({})).map(({ id, revision }) => [id, revision]),
  );
  return {
    store,
    clock,
    /** Confirms each deployment at the current time. */
    confirm: () =>
      store.transact(async (tx) => {
        const at = clock.now();
        const open = await tx.ledger.openSegments({ limit: deployments });
        await tx.deployments.recordObservations(
          open.map(({ subjectId: id }) => ({ id, revision: revisions.get(id) ?? 0, at })),
        );
      }),
    /** A round, in microseconds of CPU. */
    round: () => cpuOf(meter, () => billing.run()),
    close: async () => {
      await billing.stop();
      await store.close();
    },
  };
}
