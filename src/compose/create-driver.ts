import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { SimulatedCapacity } from '../drivers/simulator/options.ts';
import { createSimulator, type Simulator } from '../drivers/simulator/platform/simulator.ts';
import {
  assertStateFile,
  assertStateFree,
  NotAState,
  StateInUse,
} from '../drivers/simulator/platform/state-file.ts';
import { connectSimulator } from '../drivers/simulator/remote/driver.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../orchestrator/model/platform-driver.ts';
import type { Clock } from '../ports/clock.ts';
import { Fatal } from '../ports/fatal.ts';

/** What the driver needs beside the configuration. */
export interface DriverParts {
  stateFile: string;
  clock: Clock;
  /** What a `berth simulator` asks of its callers; undefined: nothing. */
  token?: string | undefined;
}

/** An embedded simulator keeps its machines beside the database file; where there is none, in the working directory. */
export function simulatorStateFile(database: string): string {
  return isPostgres(database) ? resolve('.berth', 'simulator.db') : `${sqlitePath(database)}.simulator`;
}

/** The driver that the configuration names. @throws {Fatal} */
export async function createDriver(
  config: Config,
  catalog: Catalog,
  parts: DriverParts,
): Promise<PlatformDriver> {
  const { address, attach_volume } = config.platform;
  if (address === undefined) return openSimulator(config, catalog, parts);
  return connectSimulator({ address, attachVolume: attach_volume, token: parts.token }, parts.clock);
}

/** The simulator in this process, with the units of the catalog. @throws {Fatal} */
export async function openSimulator(
  { platform }: Config,
  catalog: Catalog,
  { stateFile, clock }: DriverParts,
): Promise<Simulator> {
  try {
    mkdirSync(dirname(stateFile), { recursive: true, mode: 0o700 });
    return await createSimulator({ stateFile, capacity: simulatedCapacity(catalog), platform }, clock);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

/** Whether the driver could be created, without writing anything. @throws {Fatal} */
export function checkDriver({ platform }: Config, stateFile: string): void {
  if (platform.address !== undefined) return;
  try {
    assertStateFile(stateFile);
    assertStateFree(stateFile);
  } catch (error) {
    throw unusableState(stateFile, error);
  }
}

function unusableState(stateFile: string, error: unknown): Fatal {
  if (error instanceof NotAState)
    return new Fatal(
      `${stateFile} is no state of the simulator (${error.message}): give --state another file, such as that database's name with .simulator at its end.`,
      { cause: error },
    );
  const sentence =
    error instanceof StateInUse
      ? `Another process runs the simulator of ${stateFile}: to share its machines, run one \`berth simulator --state ${stateFile}\` and set platform.address in every berth.yaml.`
      : `The simulator cannot use its state ${stateFile} (${error instanceof Error ? error.message : error}): restore it from a backup together with the database, or delete both to start with nothing.`;
  return new Fatal(sentence, { cause: error });
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
