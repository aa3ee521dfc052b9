import type { Config } from '../config/schema.ts';
import { createSimulator } from '../drivers/simulator/driver.ts';
import type { SimulatedCapacity } from '../drivers/simulator/options.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { Clock } from '../orchestrator/ports/clock.ts';
import type { PlatformDriver } from '../orchestrator/ports/platform-driver.ts';

/** The driver that the configuration names. The simulator keeps its machines beside the database. */
export async function createDriver(
  { platform }: Config,
  catalog: Catalog,
  databasePath: string,
  clock: Clock,
): Promise<PlatformDriver> {
  const options = { stateFile: `${databasePath}.simulator`, capacity: simulatedCapacity(catalog), platform };
  return createSimulator(options, clock);
}

function simulatedCapacity({ offers, regions }: Catalog): SimulatedCapacity[] {
  return [...offers.values()].flatMap(({ id, instanceType, placements }) =>
    placements.map(({ region, units }) => ({
      offerId: id,
      datacenter: regions.get(region)?.datacenter ?? region,
      units,
      spot: instanceType === 'SPOT',
    })),
  );
}
