import type { ProbeResult, ProbeStep } from '../../ports/ssh-probe.ts';
import { type Endpoint, toSshAddress } from '../deployments/endpoint.ts';
import { transition } from '../deployments/transition.ts';
import { type DeploymentRecord, logNames, type SshProof } from '../model/deployment-record.ts';
import type { SyncContext, Unproved } from './context.ts';

/** A machine fails only after this many attempts, since for part of the window no process may have been running. */
const LEAST_ATTEMPTS = 3;

export function newSshProof(keys: readonly string[]): SshProof {
  const none = { onlineAt: null, failedAt: null, provedEndpoint: null, provedAt: null };
  return { keys: [...keys], attempts: 0, ...none };
}

/**
 * Tries once to log in with the key of the machine (M: running: "Active and reachable by SSH"). The next poll that
 * shows the endpoint ONLINE starts the deployment; without a proof in time it fails unbilled. Returns whether to poll
 * at once.
 */
export async function proveSsh(context: SyncContext, id: string): Promise<boolean> {
  const { store, clock, provider, options } = context;
  const machine = context.awaitingProof.get(id);
  const record = await store.read.deployments.byId(id);
  const proof = record?.sshProof;
  if (machine === undefined || record?.status !== 'deploying' || !proof || provider.sshProbe === null)
    return false;
  const { endpoint } = machine;
  const begunAt = clock.now();
  const { ipAddress, sshPort, loginUser } = endpoint;
  const target = { host: ipAddress ?? '', port: sshPort ?? 22, username: loginUser ?? '' };
  // Without a login user no key can be tried. Then any answer of the SSH server is the proof.
  const keys = loginUser === null ? [] : proof.keys;
  const result = await provider.sshProbe.probe(target, keys, undefined, options.polling.callTimeoutMs);
  const outcome = await write(context, record, withResult(proof, machine, result, clock.now()), begunAt);
  if (context.awaitingProof.get(id) === machine) context.awaitingProof.delete(id);
  if (outcome === 'dropped') return true;
  report(context, record, endpoint, proof, result, outcome === 'failed');
  // A provider that keeps changing the endpoint must not cause a tight loop.
  return outcome === 'proved' && proof.provedAt === null;
}

function withResult(
  proof: SshProof,
  { endpoint, seenAt }: Unproved,
  result: ProbeResult,
  now: number,
): SshProof {
  const onlineAt = proof.onlineAt ?? seenAt;
  if (result.ok) {
    const provedEndpoint = toSshAddress(endpoint);
    // The earlier proof does not count, because the endpoint has changed.
    const attempts = proof.attempts + (proof.provedAt === null ? 0 : 1);
    return { ...proof, onlineAt, attempts, provedEndpoint, provedAt: now };
  }
  // A proof of another endpoint says nothing about this one.
  const none = { provedEndpoint: null, provedAt: null };
  return { ...proof, ...none, onlineAt, attempts: proof.attempts + 1, failedAt: result.step };
}

/** Writes nothing if the row has changed: another process may hold the lease, or the deployment may have ended. */
async function write(
  context: SyncContext,
  { id, revision, sshProof: before }: DeploymentRecord,
  sshProof: SshProof,
  begunAt: number,
): Promise<'proved' | 'tried' | 'failed' | 'dropped'> {
  const { sshWindowMs } = context.options.polling;
  const isProved = sshProof.provedAt !== null;
  // A machine proved again at another endpoint gets the window a second time, but not more often.
  const isMoved = isProved && before !== null && before.provedAt !== null;
  const windowMs = isMoved ? 2 * sshWindowMs : sshWindowMs;
  return context.store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record === null || record.revision !== revision) return 'dropped';
    if ((isProved && !isMoved) || !isOver(sshProof, begunAt, windowMs)) {
      await tx.deployments.update({ ...record, sshProof });
      return isProved ? 'proved' : 'tried';
    }
    const fields = {
      failureReason: 'ssh_unreachable',
      failureDetails: detailsOf(sshProof, windowMs),
    } as const;
    await transition(context, tx, { ...record, sshProof }, { to: 'failed', at: context.clock.now(), fields });
    return 'failed';
  });
}

/** Whether the last attempt began after the window. Attempts that a suspended process delayed do not count. */
function isOver({ onlineAt, attempts }: SshProof, begunAt: number, windowMs: number): boolean {
  return onlineAt !== null && begunAt - onlineAt >= windowMs && attempts >= LEAST_ATTEMPTS;
}

const stepTexts: Readonly<Record<ProbeStep, string>> = {
  connect: 'the connection to its SSH port failed',
  banner: 'no SSH server answered on its SSH port',
  handshake: 'its SSH server did not complete the key exchange',
  host_key: 'its SSH server showed different host keys',
  auth: 'its SSH server did not accept the key',
};

function detailsOf({ failedAt, provedAt }: SshProof, windowMs: number): string {
  const minutes = Math.round(windowMs / 60_000);
  const why = provedAt === null ? stepTexts[failedAt ?? 'connect'] : 'its address changed after each login';
  return `SSH login failed for ${minutes} minutes: ${why}. The machine is being removed.`;
}

function report(
  { log }: SyncContext,
  record: DeploymentRecord,
  endpoint: Endpoint,
  before: SshProof,
  result: ProbeResult,
  hasFailed: boolean,
): void {
  const instance = record.providerInstanceId;
  const fields = { ...logNames(record), instance, endpoint: toSshAddress(endpoint) };
  if (result.ok) {
    log.info(fields, 'SSH login to a new machine succeeded with its key');
    return;
  }
  const { step, detail } = result;
  if (hasFailed)
    log.error(
      { ...fields, step, detail },
      step === 'auth'
        ? 'a new machine did not accept an SSH login with its key: its deployment failed and is not billed. If this ' +
            'happens to all machines of the provider, ask it whether it injects the keys; its offers are still sold'
        : 'a new machine could not be reached by SSH from here: its deployment failed and is not billed. If this ' +
            'happens to all machines of the provider, allow this server to connect to their SSH ports; if it never ' +
            'can, set `verify_ssh: false` for the provider in marketplace.yaml to skip the login check',
    );
  else if (before.failedAt !== step)
    log.warn(
      { ...fields, step, detail },
      'a new machine is ONLINE at its provider but does not accept an SSH login yet: it is not running and not billed',
    );
}
