import type { MachineSpec } from '../../orchestrator/ports/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { GuestFiles } from './guest-files.ts';

export const GUEST_USER = 'ubuntu';

/** What the guest can know about the machine that it runs on. */
export interface GuestFacts {
  spec: MachineSpec;
  bootedAt: number;
  privateIp: string;
  cloudInit: 'running' | 'done';
  volumes: { ref: string; sizeGb: number }[];
}

/** A running guest, as its shell sees it. */
export interface Guest {
  facts(): GuestFacts;
  readonly files: GuestFiles;
  readonly clock: Clock;
  powerOff(): void;
  reboot(): void;
}

/** Where a command reads and writes. */
export interface Streams {
  /** All of the standard input, once it has ended. */
  stdin(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
}

/** An exit status: 0 after `ms`, 130 when interrupted. */
export function pause(ms: number, guest: Guest, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const interrupt = (): void => {
      timer.cancel();
      resolve(130);
    };
    const timer = guest.clock.setTimer(ms, () => {
      signal.removeEventListener('abort', interrupt);
      resolve(0);
    });
    signal.addEventListener('abort', interrupt, { once: true });
    if (signal.aborted) interrupt();
  });
}
