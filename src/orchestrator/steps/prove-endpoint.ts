import type { ProbeResult } from '../../ports/ssh-probe.ts';
import type { Endpoint } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import { prove } from '../platform/call-platform.ts';
import type { ReconcileContext } from '../platform/context.ts';

/** The SSH proof of an endpoint: each of `sshKeys` is accepted, by a host with the key `pinned` where one is known. */
export function proveEndpoint(
  context: ReconcileContext,
  { publicIp: host, sshPort: port, sshUsername: username }: Endpoint,
  sshKeys: readonly string[],
  pinned: string | undefined,
): Promise<ProbeResult> {
  // The proof ends by itself before the call's deadline, so that its failure names the step.
  const withinMs = 0.9 * context.options.callTimeoutMs;
  return prove(context, () => context.probe.probe({ host, port, username }, sshKeys, pinned, withinMs));
}

/** The first pause after an SSH proof that failed, in milliseconds. */
export const FIRST_PAUSE_MS = 200;

/** The pause before the next SSH proof. */
export function probePauseMs({ options }: ReconcileContext, { attempt }: Lease): number {
  return Math.min(options.probeIntervalMs, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 10));
}
