import { setTimeout as pause } from 'node:timers/promises';
import { withMarketplace } from './measured-marketplace.ts';

export interface Idle {
  deployments: number;
  /** Of one core, that the process takes, with all that it does by itself: polls, bills, watches. */
  corePercent: number;
  /** How often the provider was asked for a machine. */
  pollsPerS: number;
}

const TEAM_SIZE = 50;
const SLICE_S = 300;
/** Until the marketplace has polled each of them and runs compiled. */
const WARM_UP_MS = 40_000;

/** What a marketplace takes of a core while so many deployments run and nobody asks for anything. */
export function measureIdle(
  deployments: number,
  { forMs = 60_000, warmUpMs = WARM_UP_MS } = {},
): Promise<Idle> {
  const stored = { live: deployments, teams: Math.ceil(deployments / TEAM_SIZE) };
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
