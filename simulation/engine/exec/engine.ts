import { createPlatform } from '../../../src/drivers/exec/open.ts';
import { info } from '../../../src/drivers/exec/protocol/objects.ts';
import { answersOf } from '../../../src/drivers/exec/protocol-server.fixture.ts';
import type { PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { IncusEngine } from '../incus/engine.ts';
import { ProgramChannel } from './program.ts';

const TIMEOUT_MS = 7_000;

/** A program for each server, with each capability and its machines in the cluster of Incus. */
export class ExecEngine extends IncusEngine {
  override readonly driverName: string = 'exec';
  readonly #fences = new Map<string, number>();

  override driver(process: ServerProcess, clock: Clock): PlatformDriver {
    const own = super.driver(process, clock);
    const { commands, catalog } = this.parts;
    const channel = new ProgramChannel({
      ...{ process, clock, commands, timeoutMs: TIMEOUT_MS, fences: this.#fences },
      answers: answersOf(own, clock),
    });
    const { stop, resume, restart, attachVolume, resizeVolume, ...rest } = own.manifest;
    const greeting = info.parse({
      protocol: 1,
      name: this.driverName,
      capabilities: {
        ...{ stop, resume, restart, attach_volume: attachVolume, resize_volume: resizeVolume },
        create_visible_within_ms: rest.createVisibleWithinMs,
        keeps_notes: rest.keepsNotes,
        cloud_init_bytes: rest.cloudInitBytes,
        ...{ place: true, place_volume: true, copy_volume: true },
        ...{ fences: true, orders: true, writer_mark: true },
      },
    });
    return createPlatform(channel, { info: greeting, catalog, timeoutMs: TIMEOUT_MS, log: silentLog });
  }
}
