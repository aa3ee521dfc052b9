import { instancePath } from '../../contract/paths.ts';
import type { Call } from '../../http/call.ts';
import type { Instance, Session } from '../session.ts';

/** By step, the credentials that are none. */
export const BAD_CREDENTIALS: Readonly<Record<string, Pick<Call, 'credential' | 'authorization'>>> = {
  'no-credential': { credential: 'none' },
  'wrong-credential': { credential: 'altered', authorization: 'Bearer berth-conformance-no-such-key' },
};

/** Asks something of a live instance without a good credential, with good reads on both sides. */
export async function requestWithoutCredential(
  session: Session,
  scenario: string,
  instance: Instance,
  { method, action }: { method: 'POST' | 'DELETE'; action?: '/start' | '/stop' },
): Promise<void> {
  for (const [step, credentials] of Object.entries(BAD_CREDENTIALS)) {
    await session.get(`${scenario}/before-${step}`, instancePath(instance));
    await session.send(`${scenario}/${step}`, {
      method,
      path: instancePath(instance, action),
      ...credentials,
    });
    await session.get(`${scenario}/after-${step}`, instancePath(instance));
  }
}
