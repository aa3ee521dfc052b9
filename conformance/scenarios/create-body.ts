import type { Placement } from './placement.ts';
import type { Session } from './session.ts';

/** The body of a create that there is nothing against: the offer where it is sold, the run's two keys, and a name. */
export function createBody(
  session: Session,
  { configurationId, region }: Placement,
  name: string,
  extra: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    configuration_id: configurationId,
    region,
    ssh_keys: [session.publicKey('first'), session.publicKey('second')],
    name,
    ...extra,
  };
}
