import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { Answer, Platform } from '../../../platform-model/platform.ts';
import { isGuestUp, nextChangeAt, sizeGbOf } from '../../../platform-model/records.ts';
import type { Clock, Timer } from '../../../ports/clock.ts';
import { setImmediate } from '../../../ports/timers.ts';
import type { Guest, GuestFacts } from '../guest/guest.ts';
import { GuestShell } from '../guest/shell.ts';
import { openSshServer, type SshServer } from '../guest/ssh-server.ts';
import type { Draws, SimulatorBehavior } from '../options.ts';
import { GuestFiles, logFirstBoot, writeFirstFiles } from './disk-files.ts';
import { rootDisk, type SimulatedMachine, type SimulatorState } from './state.ts';

interface Parts {
  state: SimulatorState;
  clock: Clock;
  draws: Draws;
  config: Pick<SimulatorBehavior, 'bootMs' | 'stopMs' | 'startMs'>;
  platform: Platform<SimulatedMachine>;
}

/** Delay before a guest that failed to start is started again. */
const RETRY_MS = 1_000;

/** The state of a machine's guest in this process while it is up. */
interface RunningGuest {
  /** Undefined if its SSH server never listens. */
  server: SshServer | undefined;
  bootedAt: number | null;
  isRunningLine: boolean;
  ended: AbortController;
  /** Settles when the runcmd lines have run or the guest went down. */
  firstBoot: Promise<void>;
}

/**
 * Runs the guests and SSH servers of the machines according to their records and the clock. Work on one machine is
 * serialised; different machines run in parallel.
 */
export class Runtime {
  readonly #parts: Parts;
  readonly #guests = new Map<OwnerRef, RunningGuest>();
  readonly #timers = new Map<OwnerRef, Timer>();
  readonly #queues = new Map<OwnerRef, Promise<unknown>>();
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async settleAll(): Promise<void> {
    this.#mustBeOpen();
    const { machines } = this.#parts.platform;
    await Promise.all(machines.all().map(({ spec }) => this.#inTurn(spec.ref, () => this.#settle(spec.ref))));
  }

  settle(ref: OwnerRef): Promise<void> {
    return this.#inTurn(ref, () => this.#settle(ref));
  }

  /** Runs a call on one machine, then updates its guest. */
  call<T extends Answer>(ref: OwnerRef, call: () => T): Promise<T> {
    return this.#inTurn(ref, async () => {
      await this.#settle(ref);
      const answer = call();
      if (!('outcome' in answer) || answer.outcome === 'failed') return answer;
      await this.#settle(ref);
      // Called again for a result that includes the guest's data, such as its port.
      return answer.outcome === 'done' ? call() : answer;
    });
  }

  async whenOpen<T>(call: () => T): Promise<T> {
    this.#mustBeOpen();
    return call();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#queues.values());
    await Promise.all([...this.#guests.keys()].map((ref) => this.#bringDown(ref)));
  }

  /** Runs `work` after all earlier work on the machine has ended. */
  async #inTurn<T>(ref: OwnerRef, work: () => Promise<T>): Promise<T> {
    this.#mustBeOpen();
    const turn = (this.#queues.get(ref) ?? Promise.resolve()).then(work);
    const ended = turn
      .catch(() => {})
      .then(() => {
        if (this.#queues.get(ref) === ended) this.#queues.delete(ref);
      });
    this.#queues.set(ref, ended);
    return turn;
  }

  /** Starts or stops the guest until it matches the machine's record. */
  async #settle(ref: OwnerRef): Promise<void> {
    for (;;) {
      const machine = this.#machine(ref);
      const guest = this.#guests.get(ref);
      const isUp = machine !== undefined && isGuestUp(machine, this.#parts.clock.now());
      if (guest !== undefined && (!isUp || guest.bootedAt !== machine.bootedAt)) await this.#bringDown(ref);
      else if (isUp && guest === undefined) await this.#bringUp(machine);
      else break;
    }
    this.#arm(ref);
  }

  /** The machine's current record. Undefined if the machine is gone. */
  #machine(ref: OwnerRef): SimulatedMachine | undefined {
    return this.#parts.platform.machines.of(ref)[0];
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw new Error('the simulator is closed');
  }

  /** Sets a timer for the machine's next change, or for `retryAt` if that is earlier. */
  #arm(ref: OwnerRef, retryAt = Number.POSITIVE_INFINITY): void {
    this.#timers.get(ref)?.cancel();
    this.#timers.delete(ref);
    const { clock } = this.#parts;
    const at = Math.min(retryAt, this.#nextChangeAt(ref, retryAt));
    if (at === Number.POSITIVE_INFINITY || this.#isClosed) return;
    this.#timers.set(
      ref,
      clock.setTimer(at - clock.now(), () => this.#settleInBackground(ref)),
    );
  }

  /**
   * Returns `unknown` if the state file rejects writes, as on a full disk: the machine's record then cannot be
   * updated.
   */
  #nextChangeAt(ref: OwnerRef, unknown: number): number {
    try {
      const machine = this.#machine(ref);
      return (machine && nextChangeAt(machine, this.#parts.clock.now())) ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      if (unknown === Number.POSITIVE_INFINITY) throw error;
      return unknown;
    }
  }

  /** A failure is retried later. The next call on the machine reports it. */
  #settleInBackground(ref: OwnerRef): void {
    this.#inTurn(ref, () => this.#settle(ref)).catch(() => this.#settleLater(ref));
  }

  #settleLater(ref: OwnerRef): void {
    this.#arm(ref, this.#parts.clock.now() + RETRY_MS);
  }

  async #bringUp(record: SimulatedMachine): Promise<void> {
    const { spec, bootedAt, sshPort: port, sshHostKey } = record;
    const { ref, sshKeys: authorizedKeys } = spec;
    const { clock, draws, config, state } = this.#parts;
    const guest = this.#guestOf(ref);
    state.forgetMemory(rootDisk(ref));
    if (record.cloudInitUntil === null) {
      writeFirstFiles(spec, guest.files);
      const settlingMs = draws.durationMs(`${ref}/cloud-init`, config.bootMs) / 2;
      this.#update(ref, { cloudInitUntil: (bootedAt ?? clock.now()) + settlingMs });
    }
    // The address is assigned even if no server will ever listen there.
    const opened = await openSshServer({ port, hostKey: sshHostKey.privateKey, authorizedKeys }, guest);
    if (opened.port !== port) this.#update(ref, { sshPort: opened.port });
    if (!record.sshListens) await opened.close();
    const running: RunningGuest = {
      server: record.sshListens ? opened : undefined,
      bootedAt,
      isRunningLine: false,
      ended: new AbortController(),
      firstBoot: Promise.resolve(),
    };
    this.#guests.set(ref, running);
    running.firstBoot = this.#runFirstBoot(ref, running, guest).catch(async () => {
      // The state file rejects writes. The remaining lines run when the guest is up again.
      await running.server?.close();
      if (this.#guests.get(ref) !== running) return;
      this.#guests.delete(ref);
      this.#settleLater(ref);
    });
  }

  async #bringDown(ref: OwnerRef): Promise<void> {
    const running = this.#guests.get(ref);
    if (running === undefined) return;
    this.#guests.delete(ref);
    running.ended.abort();
    await running.server?.close();
    await running.firstBoot;
    // Deletes what the guest wrote while the machine was being removed.
    if (this.#machine(ref) === undefined) this.#parts.state.deleteDisk(rootDisk(ref));
  }

  /**
   * Runs the remaining runcmd lines. Each is counted before it runs, so that a line that kills the process is not run
   * again.
   */
  async #runFirstBoot(ref: OwnerRef, running: RunningGuest, guest: Guest): Promise<void> {
    while (!running.ended.signal.aborted) {
      const record = this.#machine(ref);
      const line = record?.spec.cloudInit?.runcmd?.[record.runcmdDone];
      if (record === undefined || line === undefined) return;
      this.#update(ref, { runcmdDone: record.runcmdDone + 1 });
      running.isRunningLine = true;
      let output = '';
      const out = (text: string): void => {
        output += text;
      };
      const streams = { stdin: async () => '', out, err: out, drained: async () => {} };
      await new GuestShell(guest, 'root', '/').run(line, streams, running.ended.signal);
      running.isRunningLine = false;
      logFirstBoot(guest.files, output);
    }
  }

  #guestOf(ref: OwnerRef): Guest {
    const { state, clock, platform, config } = this.#parts;
    const attachedVolumes = (): string[] => platform.volumes.attachedTo(ref).map(({ spec }) => spec.ref);
    return {
      files: new GuestFiles(state, ref, attachedVolumes),
      clock,
      facts: () => this.#factsOf(ref),
      powerOff: () =>
        this.#goDown(ref, { power: 'stopping', until: this.#downAt(ref, 'stop', config.stopMs) }),
      reboot: () => this.#goDown(ref, { bootedAt: this.#downAt(ref, 'reboot', config.startMs) }),
    };
  }

  /** @throws {Error} if the machine is gone */
  #recordOf(ref: OwnerRef): SimulatedMachine {
    const record = this.#machine(ref);
    if (record === undefined) throw new Error(`machine ${ref} is gone`);
    return record;
  }

  #factsOf(ref: OwnerRef): GuestFacts {
    const { clock, platform } = this.#parts;
    const now = clock.now();
    const record = this.#recordOf(ref);
    const { spec, bootedAt, cloudInitUntil, runcmdDone } = record;
    const isRunning =
      (cloudInitUntil ?? Number.POSITIVE_INFINITY) > now ||
      runcmdDone < (spec.cloudInit?.runcmd?.length ?? 0) ||
      this.#guests.get(ref)?.isRunningLine === true;
    return {
      spec,
      bootedAt: bootedAt ?? now,
      cloudInit: isRunning ? 'running' : 'done',
      volumes: platform.volumes
        .attachedTo(ref)
        .map((volume) => ({ ref: volume.spec.ref, sizeGb: sizeGbOf(volume) })),
    };
  }

  #downAt(ref: OwnerRef, name: string, range: readonly [number, number]): number {
    const { clock, draws } = this.#parts;
    const record = this.#recordOf(ref);
    return clock.now() + draws.durationMs(`${record.spec.ref}/${record.boots}/${name}`, range);
  }

  /** Records that the guest shuts down by itself, after the command that requested it has ended. */
  #goDown(ref: OwnerRef, change: Partial<SimulatedMachine>): void {
    if (this.#machine(ref)?.power !== 'running') return;
    this.#update(ref, change);
    setImmediate(() => this.#settleInBackground(ref));
  }

  #update(ref: OwnerRef, change: Partial<SimulatedMachine>): void {
    const machine = this.#machine(ref);
    if (machine !== undefined) this.#parts.platform.machines.change(machine, change);
  }
}
