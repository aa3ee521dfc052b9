import { type Catalog, parseCatalogFile, toCatalog } from '../../orchestrator/catalog/catalog.ts';

const region = (datacenter: string): object => ({ name: 'Europe', country_code: 'DE', datacenter });

/** A catalog with small machines in two datacenters, and a machine with two GPUs in one of them. */
export function aCatalog(machine: object = {}): Catalog {
  const offer = {
    instance_type: 'DEDICATED',
    vcpus: 4,
    memory_gb: 8,
    storage_gb: 50,
    price_per_hour: 1,
    supports_cloud_init: true,
    os_options: ['debian-12'],
    machine,
  };
  const parsed = parseCatalogFile({
    regions: { eu1: region('fra'), eu2: region('ams') },
    offers: [
      { ...offer, id: 'small', name: 'small', capacity: { eu1: 9, eu2: 9 } },
      {
        ...offer,
        id: 'gpu',
        name: 'gpu',
        gpu_count: 2,
        gpu_type: 'H100',
        gpu_memory_gb: 80,
        capacity: { eu1: 9 },
      },
    ],
  });
  if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues));
  return toCatalog(parsed.file);
}
