import { afterAll, beforeAll, it } from 'vitest';
import { upgradeMidway } from '../upgrade.suite.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { catalogOf, findDisk, offer, platformOf, region } from './platform.ts';
import { openVirshGate } from './virsh-gate.ts';

let host: LabHost;
beforeAll(async () => {
  host = await openLabHost(1);
});
afterAll(() => host?.close());

it('after an upgrade this version finishes the creates, deletes and attaches of the earlier one, and what ran runs on [libvirt-upgrade]', async () => {
  using gate = openVirshGate();
  const find = (volume: string): string => findDisk(volume.split('/').at(-1) ?? '');
  await upgradeMidway({
    catalog: catalogOf(10),
    platform: platformOf([host]),
    offer,
    env: gate.env,
    machine: { operating_system_image: 'tiny-root' },
    volume: { name: 'data', size_gb: 1, region },
    write: (volume) => `{ ${find(volume)}; dd of=$d bs=512 conv=sync; }`,
    read: (volume) => `${find(volume)}; head -n 1 $d`,
    hold: gate.hold,
    creates: [
      { when: 'before', command: 'start' },
      { when: 'after', command: 'vol-create-as' },
    ],
    deletes: [{ when: 'before', command: 'undefine' }],
    attaches: [{ when: 'after', command: 'attach-device' }],
    movesVolumes: false,
    contents: () => host.contents(),
  });
});
