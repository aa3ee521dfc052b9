import type { RunSettings } from '../transcript/records.ts';

const RACE = 'an offer of known size (--race OFFER=UNITS)';
const PACE = 'a run at the pace of the client';
const REGION = 'an offer in a second region';

/** By the capability that a check misses: what was not tested, and the option that would have tested it. */
const OPTIONS: Readonly<Record<string, string>> = {
  [RACE]: 'overselling (--race OFFER=UNITS)',
  'a key of another account': 'another account (BERTH_OTHER_ACCOUNT_KEY)',
  'a restart of the target (--restart-command)': 'a restart (--restart-command)',
  [PACE]: 'the pace of the client (--poll-interval-ms 10000)',
  [REGION]: 'a second region (without --region)',
  'a second region within --max-cost': 'a second region (a higher --max-cost)',
  'a user name and a password': 'a login (BERTH_USERNAME and BERTH_PASSWORD)',
};

/** What a run was not asked to test, if that is why a check does not apply. */
export function notAsked(
  capability = '',
  { race, pollIntervalMs, region }: Pick<RunSettings, 'race' | 'pollIntervalMs' | 'region'>,
): string | undefined {
  if (capability === RACE && race !== undefined) return undefined;
  if (capability === PACE && pollIntervalMs >= 10_000) return undefined;
  if (capability === REGION && region === undefined) return undefined;
  return Object.hasOwn(OPTIONS, capability) ? OPTIONS[capability] : undefined;
}
