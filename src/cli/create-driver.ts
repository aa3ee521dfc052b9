import type { Config } from '../config/schema.ts';
import { createSimulator } from '../drivers/simulator/driver.ts';
import type { SimulatedCapacity } from '../drivers/simulator/options.ts';
import { assertStateFile } from '../drivers/simulator/state.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { Clock } from '../orchestrator/ports/clock.ts';
import type { PlatformDriver } from '../orchestrator/ports/platform-driver.ts';
import { Fatal } from './fatal.ts';

/** The simulator keeps its machines beside the database. */
function stateFileOf(databasePath: string): string {
  return `${databasePath}.simulator`;
}

/** The driver that the configuration names. @throws {Fatal} */
export async function createDriver(
  { platform }: Config,
  catalog: Catalog,
  databasePath: string,
  clock: Clock,
): Promise<PlatformDriver> {
  const stateFile = stateFileOf(databasePath);
  try {
    return await createSimulator({ stateFile, capacity: simulatedCapacity(catalog), platform }, clock);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

/** Whether the driver could be created, without writing anything. @throws {Fatal} */
export function checkDriver(databasePath: string): void {
  const stateFile = stateFileOf(databasePath);
  try {
    assertStateFile(stateFile);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

function unusableState(stateFile: string, error: unknown): Fatal {
  return new Fatal(
    `The simulator cannot use its state ${stateFile} (${error instanceof Error ? error.message : error}): restore it from a backup together with the database, or delete both to start with nothing.`,
    { cause: error },
  );
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
