import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { Fatal } from '../../ports/errors.ts';
import type { DriverDefinition } from '../kit/driver-definition.ts';
import { imageOf, type LibvirtConfig, libvirtConfigSchema, libvirtOfferSchema } from './options.ts';

/**
 * One or more hosts with libvirt and QEMU. Their libvirt stores everything that is known of a machine. The code that
 * connects to them is loaded when needed.
 */
export const libvirt: DriverDefinition<LibvirtConfig> = {
  name: 'libvirt',
  about: {
    provedOn: 'libvirt 9.0.0 and QEMU 7.2 of Debian 12, with emulated guests',
    provedBy: [
      'test/lab/libvirt/driver.lab.test.ts',
      'test/lab/libvirt/fleet.lab.test.ts',
      'test/lab/libvirt/behind.lab.test.ts',
      'test/lab/libvirt/interrupted.lab.test.ts',
    ],
    traps: [
      'KVM, bridges to an existing network and GPUs were not tried on a real host.',
      'A stopped machine starts only on the host that has its disk, if there is room.',
      'A volume is a file of one host: machines of others cannot attach it.',
      'A restart cuts the power: unwritten data is lost.',
      'A delete waits for external snapshots that Berth did not make, and raises an alarm.',
    ],
    guide: 'how-to/libvirt.md',
  },
  manifests: async () => [{ manifest: (await import('./open.ts')).manifest }],
  configSchema: libvirtConfigSchema,
  offerSchema: libvirtOfferSchema,
  placesOnHosts: true,
  check: () => undefined,
  checkCatalog,
  async *diagnose(options, setting) {
    const { diagnose } = await import('./diagnosis/diagnose.ts');
    yield* diagnose(options, setting);
  },
  async open(options, setting) {
    const { openLibvirt } = await import('./open.ts');
    return openLibvirt(options, setting);
  },
};

/** @throws {Fatal} for an offer with an image that is not configured */
function checkCatalog(config: LibvirtConfig, { offers }: Catalog): void {
  for (const { id, machine, osOptions } of offers.values()) {
    const read = libvirtOfferSchema.safeParse(machine);
    if (!read.success) throw new Fatal(`The offer ${id}: machine: ${read.error.issues[0]?.message}.`);
    const missing = osOptions.find((name) => imageOf(config, read.data, name) === undefined);
    if (missing !== undefined)
      throw new Fatal(
        `The offer ${id} is sold with ${missing}, which is not an image of the platform: add it under platform.images.`,
      );
  }
}
