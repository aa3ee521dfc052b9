import type { SandboxOptions } from '../compose/sandbox/sandbox.ts';
import { Fatal } from '../ports/errors.ts';
import { parseTimestamp } from './parse.ts';
import type { OutputFlag } from './print-records.ts';

export interface SandboxFlags extends OutputFlag {
  host: string;
  port: string;
  hosts?: string;
  tls?: string;
  scenario?: string;
  providers?: string;
  catalog?: string;
  profile?: string;
  seed?: string;
  clock?: 'real' | 'virtual';
  startAt?: string;
  timing?: string;
  marketplace?: true;
  creditUsd?: string;
  teamLimits?: string;
  rateLimits?: 'on' | 'off';
  ssh?: true;
  capacity?: 'unlimited' | 'catalog';
  journalHeaders?: string;
  origin?: string;
  controlKey?: string;
  stopWithStdin?: true;
}

/** The options of these flags, each of the same name. @throws {Fatal} */
export function toOptions(flags: SandboxFlags): SandboxOptions {
  const { catalog, profile, seed, ssh, capacity, origin, controlKey } = flags;
  const { scenario, clock = scenario === undefined ? 'real' : undefined } = flags;
  const given = { catalog, profile, seed, ssh, capacity, origin, control_key: controlKey };
  const values = {
    ...given,
    // A scenario may set another clock.
    clock,
    providers: flags.providers?.split(','),
    start_at: flags.startAt && parseTimestamp('--start-at', flags.startAt),
    timing: flags.timing && toTiming(flags.timing),
    marketplace: toMarketplace(flags),
    rate_limits: flags.rateLimits && flags.rateLimits === 'on',
    journal_headers: flags.journalHeaders?.split(','),
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Splits `name=value,…`. */
function toPairs(text: string): [name: string, value: string][] {
  return text.split(',').map((pair) => [pair.split('=')[0] ?? '', pair.slice(pair.indexOf('=') + 1)]);
}

function toTiming(text: string): NonNullable<SandboxOptions['timing']> {
  return Object.fromEntries(
    toPairs(text).map(([phase, range]) => {
      const [least = '', most = least] = range.split('-');
      return [phase, [least, most]];
    }),
  );
}

function toMarketplace({ marketplace, creditUsd, teamLimits }: SandboxFlags): SandboxOptions['marketplace'] {
  if (creditUsd === undefined && teamLimits === undefined) return marketplace;
  if (marketplace === undefined) throw new Fatal('--credit-usd and --team-limits need --marketplace.');
  const limits =
    teamLimits && toPairs(teamLimits).map(([name, most]) => [name, most === 'none' ? null : Number(most)]);
  return {
    ...(creditUsd !== undefined && { credit_usd: Number(creditUsd) }),
    ...(limits && { team_limits: Object.fromEntries(limits) }),
  };
}
