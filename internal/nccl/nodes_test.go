package nccl

import "testing"

func TestNodes(t *testing.T) {
	for _, c := range []struct {
		name string
		env  Env
		want int
	}{
		{"nothing is known", Env{}, 0},
		{"torchrun", Env{"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 2},
		{"torchrun on one node of an allocation", Env{"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "SLURM_JOB_NUM_NODES": "4"}, 1},
		{"torchrun of each rank of mpirun", Env{"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, 1},
		{"Open MPI", Env{"OMPI_COMM_WORLD_SIZE": "12", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 2},
		{"on one node", Env{"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 1},
		{"MVAPICH2", Env{"MV2_COMM_WORLD_SIZE": "16", "MV2_COMM_WORLD_LOCAL_SIZE": "8"}, 2},
		{"Hydra", Env{"PMI_SIZE": "16", "MPI_LOCALNRANKS": "8"}, 2},
		{"PMI of Slurm, which gives no size of this host", Env{"PMI_SIZE": "16"}, 0},
		{"Slurm", Env{"SLURM_JOB_NUM_NODES": "1"}, 1},
		{"Flux", Env{"FLUX_JOB_NNODES": "32"}, 2},
		{"a range of nodes", Env{"PET_NNODES": "1:4"}, 0},
		{"a size below that of this host", Env{"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "8"}, 0},
		{"no number", Env{"NHOSTS": "many"}, 0},
		{"a negative one", Env{"PBS_NUM_NODES": "-2"}, 0},
	} {
		if got := c.env.Nodes(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
