import { instancePath } from '../../contract/paths.ts';
import type { Call } from '../../http/call.ts';
import { stringField } from '../../text/json.ts';
import { successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Instance, Session } from '../session.ts';

/** The invalid credentials, by step name. */
export const BAD_CREDENTIALS: Readonly<Record<string, Pick<Call, 'credential' | 'authorization'>>> = {
  'no-credential': { credential: 'none' },
  'wrong-credential': { credential: 'altered', authorization: 'Bearer berth-conformance-no-such-key' },
};

/**
 * Sends a request about a live instance with each invalid credential, with valid reads before and after. Returns whether
 * the last read shows it ONLINE.
 */
export async function requestWithoutCredential(
  session: Session,
  scenario: string,
  instance: Instance,
  { method, action }: { method: 'POST' | 'DELETE'; action?: '/start' | '/stop' },
): Promise<boolean> {
  let last: Exchange | undefined;
  for (const [step, credentials] of Object.entries(BAD_CREDENTIALS)) {
    await session.get(`${scenario}/before-${step}`, instancePath(instance));
    await session.send(`${scenario}/${step}`, {
      method,
      path: instancePath(instance, action),
      ...credentials,
    });
    last = await session.get(`${scenario}/after-${step}`, instancePath(instance));
  }
  return last !== undefined && stringField(successOf(last), 'status') === 'ONLINE';
}
