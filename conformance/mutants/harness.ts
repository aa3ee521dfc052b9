import type { Check } from '../checks/check.ts';
import { CHECKS } from '../checks/index.ts';
import type { Requirement } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { run } from '../run/run.ts';
import { scenariosFor } from '../scenarios/index.ts';
import type { RestartTarget } from '../scenarios/restart/restart-target.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import { ssh2Client } from '../ssh/ssh2-client.ts';
import { Draws } from '../transcript/draws.ts';
import {
  type ChosenSettings,
  LEVELS,
  type RunSettings,
  type TranscriptRecord,
} from '../transcript/records.ts';
import { type Judged, judge } from '../verdict/judge.ts';
import { leftovers } from '../verdict/outcome.ts';
import { type AutoClock, createAutoClock } from './reference/auto-clock.ts';
import { createReference, type Reference } from './reference/create-reference.ts';
import type { ReferenceOptions } from './reference/model.ts';
import type { Rules } from './reference/rules.ts';

/** The orchestrator under test by the suite. */
export interface Subject {
  options?: Partial<ReferenceOptions>;
  behave?: (rules: Rules, hit: () => void, clock: AutoClock) => Rules;
  /** Settings that differ from the usual run. */
  run?: Partial<RunSettings>;
  /** The credentials of the run; default: an API key. */
  signsInWith?: 'login' | 'both';
  /** What the run draws its names, orders, moments and samples from; default: the same each time. */
  seed?: string;
  /** How it is restarted; default: by the reference itself. */
  restarts?: RestartTarget | 'never';
}

export interface Trial {
  records: readonly TranscriptRecord[];
  judged: readonly Judged[];
  /** Resources left on the target that the run did not report, by their id or as an entry without an id. */
  leaked: readonly string[];
  /** How often the subject's deviation took effect. */
  hits: number;
  /** Virtual time, in milliseconds. */
  tookMs: number;
}

/** What a check needs of a run. */
export type Need = Pick<Check, 'level' | 'scenarios'>;

const settings: ChosenSettings = {
  pollIntervalMs: 10_000,
  readyTimeoutMs: 600_000,
  maxCostUsd: 1000,
  maxMinutes: 600,
  // The reference's machines are on loopback, even if its base URL is public.
  allowPrivate: true,
  race: { offer: 'gpu-l4', units: 2 },
  restarts: true,
};

/**
 * Runs the suite at the contract's pace, in virtual time: all of level full or, with `needs`, the scenarios that those
 * checks need, at the lowest level that has them. SSH is real.
 */
export async function runAgainst(
  subject: Subject,
  requirements: readonly Requirement[],
  needs?: readonly Need[],
): Promise<Trial> {
  const level = LEVELS.findLast((one) => needs?.some((need) => need.level === one)) ?? 'full';
  const clock = createAutoClock();
  let hits = 0;
  const hit = (): void => {
    hits++;
  };
  const reference = createReference({
    ...subject.options,
    clock,
    behave: (rules) => subject.behave?.(rules, hit, clock) ?? rules,
  });
  const { baseUrl } = reference.options;
  const draws = new Draws(subject.seed ?? 'trial');
  try {
    const records = await run(
      {
        ...credentialsOf(reference.options, subject.signsInWith),
        baseUrl,
        level,
        settings: { ...settings, ...subject.run },
      },
      {
        runId: draws.runId,
        draws,
        transport: reference.transport,
        clock,
        ssh: heldBy(clock, ssh2Client()),
        ledgerFile: { append: () => {} },
        restartTarget: restartOf(subject, reference),
      },
      scenariosFor(level, needs, subject.run),
    );
    const listed = leftovers(new Evidence(records).resources);
    const ids = new Set(listed.map(({ id }) => id));
    const nameless = listed.filter(({ id }) => id === undefined).length;
    const leaked = reference
      .left()
      .filter((id) => !ids.has(id))
      .slice(nameless);
    return { records, judged: judge(records, requirements, CHECKS), leaked, hits, tookMs: clock.now() };
  } finally {
    await reference.close();
  }
}

function restartOf({ restarts }: Subject, reference: Reference): RestartTarget | undefined {
  if (restarts === 'never') return undefined;
  return async (signal) => {
    if (restarts !== undefined) return restarts(signal);
    await reference.restart();
    return { exitCode: 0, output: '' };
  };
}

function credentialsOf(
  { apiKeys, otherAccountKeys, login }: ReferenceOptions,
  signsInWith: Subject['signsInWith'],
) {
  const [apiKey, secondApiKey] = apiKeys;
  const [otherAccountKey] = otherAccountKeys;
  if (signsInWith === 'login') return { login };
  return { apiKey, secondApiKey, otherAccountKey, ...(signsInWith === 'both' && { login }) };
}

/** The sorted ids of the requirements that failed or warned. */
export function reddened({ judged }: Trial): string[] {
  return judged
    .filter(({ verdict }) => verdict === 'fail' || verdict === 'warn')
    .map(({ requirement }) => requirement.id)
    .toSorted();
}

/** Stops virtual time during real logins. */
function heldBy(clock: AutoClock, client: SshClient): SshClient {
  return {
    newKeyPair: (comment, type) => client.newKeyPair(comment, type),
    login: (login) => clock.during(client.login(login)),
  };
}
