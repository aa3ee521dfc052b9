import type { ProbeResult } from '../../ports/ssh-probe.ts';
import type { Endpoint } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import { prove } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';

/** Makes the SSH proof of an endpoint: it accepts each of `sshKeys`, and its host key is `pinned`, if that is known. */
export function proveEndpoint(
  context: ReconcileContext,
  { publicIp: host, sshPort: port, sshUsername: username }: Endpoint,
  sshKeys: readonly string[],
  pinned: string | undefined,
): Promise<ProbeResult> {
  // The proof ends before the call's deadline, so that its failure names the step.
  const withinMs = 0.9 * context.options.callTimeoutMs;
  return prove(context, () => context.probe.probe({ host, port, username }, sshKeys, pinned, withinMs));
}

/** The pause after the first failed SSH proof, in milliseconds. */
export const FIRST_PAUSE_MS = 200;

/** The pause before the next SSH proof, in milliseconds. */
export function probePauseMs({ options }: ReconcileContext, { attempt }: Lease): number {
  return Math.min(options.probeIntervalMs, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 10));
}
