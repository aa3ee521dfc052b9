import { setTimeout as pause } from 'node:timers/promises';
import { isPostgres } from '../../src/config/server-schema.ts';
import { cpuMeter } from '../support/cpu.ts';
import { writeMeter } from '../support/writes.ts';
import { NO_SLICE_S, withMarketplace } from './measured-marketplace.ts';
import { ofTeams } from './stored-deployments.ts';

export interface Idle {
  deployments: number;
  /** Share of one core that the process uses for its background work: polls, billing, monitoring. */
  corePercent: number;
  /** Requests for an instance at the provider. */
  pollsPerS: number;
}

const SLICE_S = 300;
/** Time until each deployment was polled and the code is compiled. */
const WARM_UP_MS = 40_000;

/** Measures the CPU of a marketplace with running deployments and without requests. */
export function measureIdle(
  deployments: number,
  { forMs = 60_000, warmUpMs = WARM_UP_MS } = {},
): Promise<Idle> {
  const stored = ofTeams(deployments);
  return withMarketplace({ ...stored, intervalS: [10, 30], sliceS: SLICE_S }, async ({ server, polls }) => {
    await pause(warmUpMs);
    const read = async () => ({
      at: performance.now(),
      polls: await polls(),
      cpuUs: (await server.usage()).cpuUs,
    });
    const begun = await read();
    await pause(forMs);
    const ended = await read();
    const tookMs = ended.at - begun.at;
    return {
      deployments,
      corePercent: (ended.cpuUs - begun.cpuUs) / 10 / tookMs,
      pollsPerS: (1000 * (ended.polls - begun.polls)) / tookMs,
    };
  });
}

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
    listsChanges,
    forMs,
    warmUpMs,
  }: {
    createDatabase: () => Promise<string>;
    listsChanges?: boolean;
    forMs: number;
    warmUpMs: number;
  },
): Promise<IdleSync> {
  const stored = {
    ...ofTeams(deployments),
    listsChanges,
    createDatabase,
  };
  const options = { ...stored, intervalS: [10, 30], sliceS: NO_SLICE_S } as const;
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
