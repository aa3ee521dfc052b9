import { createAutoClock } from '../../conformance/mutants/reference/auto-clock.ts';
import {
  createReference,
  type ReferenceSetup,
} from '../../conformance/mutants/reference/create-reference.ts';
import { run } from '../../conformance/run/run.ts';
import { scenariosFor } from '../../conformance/scenarios/index.ts';
import { ssh2Client } from '../../conformance/ssh/ssh2-client.ts';
import { Draws } from '../../conformance/transcript/draws.ts';
import type { Level, RunSettings } from '../../conformance/transcript/records.ts';
import { type Received, recording } from './traffic.ts';

/** What a provider receives from a run of the suite. `seed`: from which the run draws; `loginMs`: how long a login takes. */
export async function recordRun(
  seed: string,
  level: Level,
  chosen: Partial<RunSettings>,
  { behave, loginMs = 0 }: { behave?: ReferenceSetup['behave']; loginMs?: number } = {},
): Promise<Received[]> {
  const draws = new Draws(seed);
  const clock = createAutoClock({
    startWallMs: Date.UTC(2026, 0, 1) + Math.floor(draws.fraction('start') * 1e10),
  });
  const reference = createReference({ clock, ...(behave && { behave }) });
  const { baseUrl, apiKeys } = reference.options;
  const { transport, received } = recording(reference.transport, baseUrl, clock);
  const ssh = ssh2Client();
  const settings = {
    pollIntervalMs: 10_000,
    readyTimeoutMs: 600_000,
    maxCostUsd: 1000,
    maxMinutes: 600,
    allowPrivate: true,
    ...chosen,
  };
  try {
    await run(
      { apiKey: apiKeys[0], baseUrl, level, settings },
      {
        runId: draws.hex('run id', 10),
        draws,
        transport,
        clock,
        ssh: {
          newKeyPair: ssh.newKeyPair,
          login: async (login) => {
            await clock.sleep(loginMs);
            return clock.during(ssh.login(login));
          },
        },
        ledgerFile: { append: () => {} },
      },
      scenariosFor(level, undefined, settings),
    );
    return [...received];
  } finally {
    await reference.close();
  }
}
