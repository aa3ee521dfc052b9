import { setTimeout as pause } from 'node:timers/promises';
import { isPostgres } from '../../src/config/server-schema.ts';
import { cpuMeter } from '../support/cpu.ts';
import { writeMeter } from '../support/writes.ts';
import { withMarketplace } from './measured-marketplace.ts';
import { ofTeams } from './stored-deployments.ts';

export interface IdleSync {
  /** Share of one core, including the database, for 1,000 deployments. */
  corePercentOf1000: number;
  pollsPerSOf1000: number;
  /** Write transactions. */
  writesPerS: number;
  bytesADayOfOne: number;
}

const DAY_S = 86_400;

/** Measures the cost of following running deployments that do not change, on either database. */
export function measureIdleSync(
  deployments: number,
  {
    createDatabase,
    forMs,
    warmUpMs,
  }: { createDatabase: () => Promise<string>; forMs: number; warmUpMs: number },
): Promise<IdleSync> {
  const options = {
    ...ofTeams(deployments),
    createDatabase,
    intervalS: [10, 30],
  } as const;
  return withMarketplace(options, async ({ server, database, polls }) => {
    const meter = await cpuMeter(database);
    const writes = await writeMeter(database, server.pid);
    try {
      await pause(warmUpMs);
      const read = async () => ({
        at: performance.now(),
        polls: await polls(),
        cpuUs: (await server.usage()).cpuUs + (isPostgres(database) ? meter() : 0),
        ...(await writes.read()),
      });
      const begun = await read();
      await pause(forMs);
      const ended = await read();
      const tookS = (ended.at - begun.at) / 1_000;
      const thousands = deployments / 1_000;
      return {
        corePercentOf1000: (ended.cpuUs - begun.cpuUs) / 1e4 / tookS / thousands,
        pollsPerSOf1000: (ended.polls - begun.polls) / tookS / thousands,
        writesPerS: (ended.transactions - begun.transactions) / tookS,
        bytesADayOfOne: ((ended.bytes - begun.bytes) / tookS / deployments) * DAY_S,
      };
    } finally {
      await writes.close();
    }
  });
}
