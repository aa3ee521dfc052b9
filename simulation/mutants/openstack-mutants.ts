import type { Mutant } from './mutant.ts';

/** Ways in which a driver of OpenStack takes a machine for gone, removes another's, or leaves objects behind. */
export const openstackMutants: readonly Mutant[] = [
  {
    id: 'renamed-gone',
    subject: 'openstack',
    title: 'a server that somebody renamed counts as gone',
    patches: [
      {
        file: 'src/drivers/openstack/objects.ts',
        find: 'api.servers({ tags: ref }),',
        replace: 'api.servers({ name: ref }),',
      },
      {
        file: 'src/drivers/openstack/objects.ts',
        find: 'tagged.some((one) => refOf(one) === ref) ? tagged : await api.servers();',
        replace: 'tagged;',
      },
      {
        file: 'src/drivers/openstack/objects.ts',
        find: 'const all = [...servers, ...(await unlisted(api, servers, ports))];',
        replace: 'const all = servers;',
      },
    ],
  },
  {
    id: 'copy-removed',
    subject: 'openstack',
    title: 'a server with the metadata of a machine is removed with it, although somebody made it as a copy',
    patches: [
      {
        file: 'src/drivers/openstack/objects.ts',
        find: "isCopy(one) || isStray(one, named) ? 'copies' : 'own'",
        replace: "isStray(one, named) ? 'copies' : 'own'",
      },
      {
        file: 'src/drivers/openstack/destroy.ts',
        find: 'found.filter((one) => refOf(one) === ref && !isCopy(one));',
        replace: 'found.filter((one) => refOf(one) === ref);',
      },
    ],
  },
  {
    id: 'image-left',
    subject: 'openstack',
    title: 'the image of a shelved server is left when its machine is destroyed',
    patches: [
      {
        file: 'src/drivers/openstack/destroy.ts',
        find: 'const images = await shelveImages(platform, ref, ids);',
        replace: 'const images = ids.length < 0 ? await shelveImages(platform, ref, ids) : [];',
      },
    ],
  },
  {
    id: 'address-left',
    subject: 'openstack',
    title: 'the floating IP of a machine is left when it is destroyed',
    patches: [
      {
        file: 'src/drivers/openstack/destroy.ts',
        find: 'const { floatingIps, bootVolumes } = attempt;',
        replace: 'const { floatingIps, bootVolumes } = { ...attempt, floatingIps: [] as { id: string }[] };',
      },
    ],
  },
  {
    id: 'early-copy-kept',
    subject: 'openstack',
    title:
      'a copy from before the creation of a server was complete counts as the machine once the server is gone',
    patches: [
      {
        file: 'src/drivers/openstack/objects.ts',
        find: "isCopy(one) || isStray(one, named) ? 'copies' : 'own'",
        replace: "isCopy(one) && named.size >= 0 ? 'copies' : 'own'",
      },
    ],
  },
  {
    id: 'cell-believed',
    subject: 'openstack',
    title: 'servers whose cell is down count as gone',
    patches: [
      {
        file: 'src/drivers/openstack/objects.ts',
        find: 'if (hidden !== undefined) throw new Error(`Nova',
        replace: 'if (hidden?.id === "") throw new Error(`Nova',
      },
    ],
  },
  {
    id: 'error-ends',
    subject: 'openstack',
    title: 'a server that Nova shows in ERROR counts as failed, although it may run again',
    patches: [
      {
        file: 'src/drivers/openstack/translate.ts',
        find: "ERROR: (_task, server) => (hasPower(server, POWERED_ON) ? 'running' : 'paused'),",
        replace: "ERROR: () => 'failed',",
      },
    ],
  },
];
