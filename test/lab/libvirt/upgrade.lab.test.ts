import { it } from 'vitest';
import { LabServer } from '../lab-server.ts';
import { upgradeMidway } from '../upgrade.suite.ts';
import { openLabHost } from './lab-host.ts';
import { catalogOf, findDisk, offer, platformOf, region } from './platform.ts';
import { openVirshGate } from './virsh-gate.ts';

it('after an upgrade this version finishes the creates, deletes and attaches of the earlier one, and what ran runs on [libvirt-upgrade]', async () => {
  const host = await openLabHost(1);
  await using server = new LabServer(catalogOf(10), platformOf([host]), offer);
  using gate = openVirshGate();
  const find = (volume: string): string => findDisk(volume.split('/').at(-1) ?? '');
  await upgradeMidway({
    server,
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
  await host.close();
});
