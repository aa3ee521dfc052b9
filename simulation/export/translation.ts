import type { ScenarioInput } from '../../src/sandbox/state/scenario-format.ts';
import type { Happening } from '../kernel/journal.ts';

export type Step = NonNullable<ScenarioInput['steps']>[number];
export type Of<Kind extends Happening['kind']> = Extract<Happening, { kind: Kind }>;
/** What arms a fault; `nothing`: another step does it; undefined: a sandbox cannot do that. */
type Arming = { fault: string } & Record<string, unknown>;

/** How the words of a simulation are those of a sandbox. */
export interface Translation {
  sandbox: NonNullable<ScenarioInput['sandbox']>;
  begin: readonly Step[];
  /** Whom requests go to. */
  provider: string;
  account(who: string): string;
  body(body: Record<string, unknown>): Record<string, unknown>;
  call(call: Of<'call'>): Arming | 'nothing' | undefined;
  event(event: Of<'event'>): Arming | undefined;
}
