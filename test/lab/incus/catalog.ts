export const region = 'eu-lab';
/** Six of them fit on the cluster, by what the catalog says. */
export const offer = { configuration_id: 'small', region };
const UNITS = 6;

/** One offer, of machines with that image. */
export const catalogOf = (imageName: string) => ({
  regions: {
    [region]: {
      name: 'Lab',
      country_code: 'DE',
      datacenter: 'lab1',
      volume_types: [
        { name: 'btrfs', price_per_gb_hour: 0.0001, min_size_gb: 1, max_size_gb: 40, shareable: false },
      ],
    },
  },
  offers: [
    {
      id: offer.configuration_id,
      name: 'Small',
      instance_type: 'DEDICATED',
      vcpus: 1,
      memory_gb: 0.25,
      storage_gb: 1,
      price_per_hour: 0.01,
      os_options: [imageName],
      supports_cloud_init: true,
      capacity: { [region]: UNITS },
      machine: { forward_ports: [8080] },
    },
  ],
});
