import type { Config } from '../config/schema.ts';
import { createSimulator } from '../drivers/simulator/driver.ts';
import type { SimulatedCapacity } from '../drivers/simulator/options.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { Clock } from '../orchestrator/ports/clock.ts';
import type { PlatformDriver } from '../orchestrator/ports/platform-driver.ts';
import { Fatal } from './fatal.ts';

/** The driver that the configuration names. The simulator keeps its machines beside the database. @throws {Fatal} */
export async function createDriver(
  { platform }: Config,
  catalog: Catalog,
  databasePath: string,
  clock: Clock,
): Promise<PlatformDriver> {
  const stateFile = `${databasePath}.simulator`;
  try {
    return await createSimulator({ stateFile, capacity: simulatedCapacity(catalog), platform }, clock);
  } catch (error) {
    throw new Fatal(
      `The simulator cannot use its state ${stateFile} (${error instanceof Error ? error.message : error}): restore it from a backup together with the database, or delete both to start with nothing.`,
      { cause: error },
    );
  }
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
