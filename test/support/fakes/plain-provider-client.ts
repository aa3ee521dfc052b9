import { type OrchestratorClient, ProviderError } from '../../../src/client/orchestrator-client.ts';
import type { PlainProvider } from './plain-provider.ts';
import type { ProviderFaults } from './provider-faults.ts';

/** The provider as a client of the contract sees it: each call goes through `faults`, by default the provider's. */
export function plainProviderClient(
  provider: PlainProvider,
  faults: Pick<ProviderFaults, 'through'> = provider.faults,
): OrchestratorClient {
  const available = (region: string | undefined) =>
    provider.configurations.flatMap((it) => {
      const regions = it.regions.filter(
        (name) => (region === undefined || name === region) && provider.free(it.id, name) > 0,
      );
      return it.available && regions.length > 0 ? [{ ...it, regions }] : [];
    });
  return {
    listConfigurations: (options) =>
      faults.through('listConfigurations', { args: [], options }, () => provider.configurations),
    listAvailability: (region, options) =>
      faults.through('listAvailability', { args: [region], options }, () => available(region)),
    listInstances: (options) =>
      faults.through('listInstances', { args: [], options }, () => provider.instances),
    createInstance: (request, key, options) =>
      faults.through('createInstance', { args: [request, key], options }, () => provider.create(request)),
    getInstance: (id, region, options) =>
      faults.through('getInstance', { id, args: [region], options }, () => provider.get(id)),
    pollInstance: async (id, region, mark, options) => {
      const instance = await faults.through('getInstance', { id, args: [region], options }, () =>
        provider.get(id),
      );
      const newMark = JSON.stringify(instance);
      return newMark === mark ? 'unchanged' : { instance, mark: newMark };
    },
    deleteInstance: (id, region, options) =>
      faults.through('deleteInstance', { id, args: [region], options }, () => provider.delete(id)),
    startInstance: (id, region, options) =>
      faults.through('startInstance', { id, args: [region], options }, () => provider.start(id)),
    stopInstance: (id, region, options) =>
      faults.through('stopInstance', { id, args: [region], options }, () => provider.stop(id)),
    listVolumeLocations: (options) =>
      faults.through('listVolumeLocations', { args: [], options }, () => [
        ...provider.options.volumeLocations,
      ]),
    createVolume: (request, key, options) =>
      faults.through('createVolume', { args: [request, key], options }, () => provider.createVolume(request)),
    getVolume: (id, options) =>
      faults.through('getVolume', { id, args: [], options }, () => provider.getVolume(id)),
    deleteVolume: (id, options) =>
      faults.through('deleteVolume', { id, args: [], options }, () => provider.deleteVolume(id)),
    attachVolume: (id, ids, options) =>
      faults.through('attachVolume', { id, args: [ids], options }, () => provider.attach(id, ids)),
    detachVolume: (id, ids, options) =>
      faults.through('detachVolume', { id, args: [ids], options }, () => provider.detach(id, ids)),
    restartInstance: (id, region, options) =>
      faults.through('restartInstance', { id, args: [region], options }, () => provider.restart(id)),
    restartStatus: (id, region, options) =>
      faults.through('restartStatus', { id, args: [region], options }, () => provider.restartStatus(id)),
    resizeVolume: (id, size, options) =>
      faults.through('resizeVolume', { id, args: [size], options }, () => provider.resize(id, size)),
    listChanges: (since, options) =>
      faults.through('listChanges', { args: [since], options }, () => {
        throw new ProviderError('not_found', 'GET /x/changes: 404, There is no such path.', { status: 404 });
      }),
    close: async () => undefined,
  };
}
