import { startOrchestrator } from '../../src/compose/orchestrator/orchestrator.ts';
import { listen } from '../../src/compose/server/listen.ts';
import { orchestratorStores } from '../../src/compose/stores/orchestrator.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { loadCatalog, loadConfig } from '../../src/config/load.ts';
import { machineSpec } from '../../src/drivers/simulator/simulator.fixture.ts';
import { requestIds } from '../../src/http/api/request-context.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { refuseWire } from '../../src/orchestrator/http/errors.ts';
import type { ObservedMachine, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { createLog } from '../../src/runtime/log.ts';
import { systemClock, systemRandom } from '../../src/runtime/system.ts';
import { everyProbeWorks, PlainPlatform } from '../../test/support/doubles/plain-platform.ts';
import { answerBench } from '../support/measured-process.ts';

// `berth serve` with an in-memory platform that answers at once and whose machines accept logins, so that only the
// orchestrator is measured. The platform has the machines of the stored instances.
const [database = '', configFile = ''] = process.argv.slice(2);
const { config } = loadConfig({ file: configFile, flags: { port: '0', database }, env: {} });
const log = createLog(config.log_level);
const store = await openIn(orchestratorStores, database, { log });
const platform = new PlainPlatform(systemClock);
await addMachines(platform, store);
const nextId = requestIds(systemRandom);
const orchestrator = await startOrchestrator({
  config,
  catalog: withRoom(loadCatalog(config.catalog)),
  store,
  drivers: new Map([['default', answeringAnew(platform.driver)]]),
  probe: everyProbeWorks,
  environmentKey: undefined,
  clock: systemClock,
  random: systemRandom,
  log,
  failpoint: () => undefined,
});
const { origin } = await listen(config, { nextId, refuse: refuseWire, log }, orchestrator.listener);
answerBench({ port: Number(new URL(origin).port) });

async function addMachines(platform: PlainPlatform, { read }: Store): Promise<void> {
  for (const { ownerRef: ref, endpoint, createdAt } of await read.instances.list({})) {
    await platform.driver.create(machineSpec({ ref }), null);
    platform.change(ref, { createdAt, endpoint });
  }
}

/** No offer is ever sold out. */
function withRoom(catalog: Catalog): Catalog {
  const offers = [...catalog.offers.values()].map((offer) => ({
    ...offer,
    placements: offer.placements.map((placement) => ({ ...placement, units: 1_000_000 })),
  }));
  return { ...catalog, offers: new Map(offers.map((offer) => [offer.id, offer])) };
}

/** Each listing consists of new objects, like a parsed answer. */
function answeringAnew(driver: PlatformDriver): PlatformDriver {
  return {
    ...driver,
    list: async () => {
      const listing = await driver.list();
      return listing.answer === 'listed' ? { ...listing, items: listing.items.map(copyOf) } : listing;
    },
  };
}

function copyOf(machine: ObservedMachine): ObservedMachine {
  const { endpoint } = machine;
  if (endpoint === undefined) return { ...machine };
  const portForwards = endpoint.portForwards?.map((forward) => ({ ...forward }));
  return { ...machine, endpoint: { ...endpoint, ...(portForwards && { portForwards }) } };
}
